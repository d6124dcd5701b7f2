import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { git } from "./git.mjs";

/** What a signature is for, so that it cannot be passed off as one of a commit. */
export const namespace = "sluice-release";

/** Who may sign releases: ssh-keygen's list of allowed signers, with OpenPGP fingerprints in comments. */
export const signersFile = "SIGNERS";

/**
 * @typedef {{ kind: "ssh", key: string } | { kind: "gpg", key: string }} Signer
 * `key` is a file or the text of a public key, or what gpg finds a key by
 */

/**
 * The key to sign with: the given one, else the one that git signs with.
 *
 * @param {string} root
 * @param {{ key?: string | undefined, gpg?: string | undefined }} given
 * @returns {Signer | undefined}
 */
export function findSigner(root, { key, gpg }) {
  if (key !== undefined) return { kind: "ssh", key };
  if (gpg !== undefined) return { kind: "gpg", key: gpg };
  const configured = git(root, "config", "user.signingkey");
  if (!configured) return undefined;
  if (git(root, "config", "gpg.format") === "ssh") return { kind: "ssh", key: configured.replace(/^key::/, "") };
  return { kind: "gpg", key: configured };
}

/**
 * Why users could not verify what this signer signs. Undefined if they can.
 *
 * @param {string} root
 * @param {Signer} signer
 * @returns {string | undefined}
 */
export function findSignerProblem(root, signer) {
  const signers = readIfPresent(path.join(root, signersFile)) ?? "";
  if (signer.kind === "gpg") {
    const fingerprint = readFingerprint(signer.key);
    if (fingerprint === undefined) return `gpg has no secret key ${signer.key}`;
    if (signers.includes(fingerprint)) return undefined;
    return `${signersFile} does not list this key. Add the line\n\n  # openpgp ${fingerprint}\n`;
  }
  const publicKey = readPublicKey(signer.key);
  if (publicKey === undefined) return `${signer.key} is not an SSH key, or there is no ${signer.key}.pub next to it`;
  if (signers.split("\n").some((line) => !line.startsWith("#") && line.includes(publicKey))) return undefined;
  const email = git(root, "config", "user.email") || "you@example.com";
  return `${signersFile} does not list this key. Add the line\n\n  ${email} namespaces="${namespace}" ${publicKey}\n`;
}

/**
 * Signs a file, and verifies the signature as a user does. Writes `FILE.sig` for SSH, `FILE.asc` for OpenPGP; nothing if it fails.
 *
 * @param {string} root
 * @param {Signer} signer
 * @param {string} file
 * @returns {string} the file with the signature
 */
export function signFile(root, signer, file) {
  const signature = `${file}.${signer.kind === "ssh" ? "sig" : "asc"}`;
  try {
    if (signer.kind === "ssh") signBySsh(root, signer.key, file);
    else {
      const made = run("gpg", [
        "--batch",
        "--yes",
        "--armor",
        "--local-user",
        signer.key,
        "--output",
        signature,
        "--detach-sign",
        file,
      ]);
      if (!made.ok) throw new Error(`gpg could not sign:\n${made.text}`);
      const verified = run("gpg", ["--batch", "--verify", signature, file]);
      if (!verified.ok) throw new Error(`gpg does not accept its own signature:\n${verified.text}`);
    }
  } catch (error) {
    rmSync(signature, { force: true });
    throw error;
  }
  return signature;
}

/**
 * @param {string} root
 * @param {string} key
 * @param {string} file
 */
function signBySsh(root, key, file) {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-sign-"));
  try {
    let keyFile = expandHome(key);
    if (!existsSync(keyFile)) {
      // The text of a public key, whose private half an agent has.
      keyFile = path.join(folder, "key.pub");
      writeFileSync(keyFile, `${key}\n`);
    }
    const made = run("ssh-keygen", ["-Y", "sign", "-f", keyFile, "-n", namespace, file]);
    if (!made.ok) throw new Error(`ssh-keygen could not sign:\n${made.text}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const publicKey = readPublicKey(key) ?? "";
  const signers = readFileSync(path.join(root, signersFile), "utf8").split("\n");
  const [name = ""] = signers.find((line) => line.includes(publicKey))?.split(" ") ?? [];
  const verify = ["-Y", "verify", "-f", path.join(root, signersFile), "-I", name, "-n", namespace, "-s", `${file}.sig`];
  const verified = run("ssh-keygen", verify, readFileSync(file));
  if (!verified.ok) throw new Error(`ssh-keygen does not accept its own signature:\n${verified.text}`);
}

/**
 * `ssh-ed25519 AAAA…`, without a comment.
 *
 * @param {string} key
 */
function readPublicKey(key) {
  const file = expandHome(key);
  const text = /^(ssh|ecdsa|sk)-/.test(key) ? key : (readIfPresent(`${file}.pub`) ?? readIfPresent(file));
  return /^(?:ssh|ecdsa|sk)-\S+ \S+/.exec(text ?? "")?.[0];
}

/** @param {string} key */
function readFingerprint(key) {
  const { ok, text } = run("gpg", ["--batch", "--with-colons", "--list-secret-keys", key]);
  return ok ? /^fpr:+([0-9A-F]{40,}):/m.exec(text)?.[1] : undefined;
}

/** @param {string} file */
function expandHome(file) {
  return file.startsWith("~/") ? path.join(homedir(), file.slice(2)) : file;
}

/** @param {string} file */
function readIfPresent(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * @param {string} tool
 * @param {readonly string[]} args
 * @param {Buffer} [input]
 */
function run(tool, args, input) {
  // A passphrase is asked for on the terminal, not on the standard input.
  const stdin = input === undefined ? "inherit" : "pipe";
  const { status, stdout, stderr, error } = spawnSync(tool, args, {
    encoding: "utf8",
    input,
    stdio: [stdin, "pipe", "pipe"],
  });
  return {
    ok: status === 0,
    text: error === undefined ? `${stdout}${stderr}` : `${tool} cannot be started: ${error.message}`,
  };
}
