import type { JsonObject } from "@sluice/protocol/admin";
import { type Problem, SluiceError } from "sluice";
import { type PolicyDialect, parsePolicyFiles } from "sluice/policy-text";
import { parse } from "yaml";
import { renderYaml } from "../../control-plane/documents/diff-documents.ts";
import { keptDocument } from "../../control-plane/documents/policy-documents.ts";
import { defaultPolicyId } from "../../control-plane/documents/read-documents.ts";
import { type PolicyFile, readPolicyFiles } from "../../data-plane/policy-files/policy-files.ts";
import { policySetBody } from "../../data-plane/transports/http/policy-body.ts";
import { renderPolicyProblem } from "../../observe/telemetry/render-policy-problem.ts";
import { CommandError, type Terminal, type TerminalInput } from "../terminal.ts";

/** What stands in policy files, as the policy store keeps it. */
export interface PolicyDocuments {
  /** By id; the default policy under `default`. */
  readonly policies: ReadonlyMap<string, JsonObject>;
  readonly subjects: readonly unknown[];
  readonly files: readonly PolicyFile[];
}

const fromInput = "(input)";
const inStore = "(policy store)";

/** Reads a policy file, a folder of them, or with `-` what is typed or piped in. */
export async function readPolicyDocuments(path: string, terminal: Pick<Terminal, "stdin">): Promise<PolicyDocuments> {
  const files = path === "-" ? [{ file: fromInput, text: await readAll(terminal.stdin) }] : await readFiles(path);
  try {
    return documentsOf(files);
  } catch (error) {
    throw asCommandError(error);
  }
}

/**
 * What may surprise in files. Throws a `CommandError` with every problem and its place, where they and the policies that stay
 * beside them cannot be in force together.
 */
export function checkTogether(
  { files, policies }: PolicyDocuments,
  stored: ReadonlyMap<string, JsonObject>,
): readonly Problem[] {
  const staying = [...stored].filter(([id]) => !policies.has(id));
  const others = staying.filter(([id]) => id !== defaultPolicyId).map(([id, document]) => ({ ...document, id }));
  const fallback = staying.find(([id]) => id === defaultPolicyId)?.[1];
  const rest = { policies: others, ...(fallback !== undefined && { default: withoutId(fallback) }) };
  try {
    const { warnings } = parsePolicyFiles([...files, { file: inStore, text: JSON.stringify(rest) }]);
    return warnings.filter(({ place }) => place?.file !== inStore);
  } catch (error) {
    throw asCommandError(error);
  }
}

async function readFiles(path: string): Promise<readonly PolicyFile[]> {
  try {
    return (await readPolicyFiles(path)).files;
  } catch (error) {
    throw error instanceof SluiceError ? new CommandError(error.message) : error;
  }
}

/** The entry of a policy file for a stored policy. */
export function renderPolicyFile(policies: ReadonlyMap<string, JsonObject>, form: "yaml" | "json"): string {
  const fallback = policies.get(defaultPolicyId);
  const listed = [...policies].filter(([id]) => id !== defaultPolicyId).map(([id, document]) => ({ id, ...document }));
  const file = {
    ...((listed.length > 0 || fallback === undefined) && { policies: listed }),
    ...(fallback !== undefined && { default: withoutId(fallback) }),
  };
  return form === "json" ? `${JSON.stringify(file, undefined, 2)}\n` : renderYaml(file);
}

function withoutId(document: JsonObject): JsonObject {
  const { id: _id, ...rest } = document;
  return rest;
}

function documentsOf(files: readonly PolicyFile[]): PolicyDocuments {
  const policies = new Map<string, JsonObject>();
  const subjects: unknown[] = [];
  for (const { file, text } of files) {
    const read = readOne(file, text);
    for (const policy of read.policies) {
      if (policy.id === defaultPolicyId)
        throw new CommandError(
          `${file}: a policy has the id ${defaultPolicyId}, which in the store is the one under default; choose another`,
          1,
        );
      if (policies.has(policy.id))
        throw new CommandError(`policy ${policy.id} is written twice; every policy has its own id`, 1);
      policies.set(policy.id, keptDocument(policy.id, policy.document));
    }
    if (read.fallback !== undefined) policies.set(defaultPolicyId, keptDocument(defaultPolicyId, read.fallback));
    subjects.push(...read.subjects);
  }
  return { policies, subjects, files };
}

interface ReadFile {
  readonly policies: readonly { readonly id: string; readonly document: JsonObject }[];
  readonly fallback: JsonObject | undefined;
  readonly subjects: readonly unknown[];
}

interface WrittenFile {
  readonly domain?: unknown;
  readonly policies?: readonly JsonObject[];
  readonly default?: JsonObject | string;
  readonly subjects?: readonly unknown[];
}

function readOne(file: string, text: string): ReadFile {
  const dialect = dialectOf(file, text);
  const written = (
    dialect === "sluice" ? parse(text) : JSON.parse(JSON.stringify(translated(file, text, dialect)))
  ) as WrittenFile;
  const { domain } = written;
  return {
    policies: (written.policies ?? []).map((policy) => ({
      id: String(policy.id),
      document: domain === undefined || domain === "default" || namesDomain(policy) ? policy : { ...policy, domain },
    })),
    fallback: typeof written.default === "string" ? { unlimited: true } : written.default,
    subjects: written.subjects ?? [],
  };
}

function namesDomain({ domain, match }: JsonObject): boolean {
  return domain !== undefined || (match as JsonObject | undefined)?.domain !== undefined;
}

/** Other formats in Sluice's own, in which the policy store keeps policies. */
function translated(file: string, text: string, dialect: PolicyDialect): JsonObject {
  if (dialect === "envoy")
    throw new CommandError(
      `${file} is in Envoy's format, which the policy store does not keep; serve it as a file: sluice serve --config ${file}`,
    );
  const { default: fallback, ...body } = policySetBody(parsePolicyFiles([{ file, text }]).policySet);
  // Where a file says nothing of a default, everything that it could say is written out here.
  return /^[ \t]*"?default"?[ \t]*:/m.test(text) ? { ...body, default: fallback } : body;
}

/** By its keys alone: what is wrong with the rest is told later, beside the policies in the store. */
function dialectOf(file: string, text: string): PolicyDialect {
  try {
    return parsePolicyFiles([{ file, text }]).dialects[0] ?? "sluice";
  } catch (error) {
    // All that is wrong may be that it refers to policies which are in the store.
    if (isReadable(parseLoosely(text))) return "sluice";
    throw error;
  }
}

function isReadable(contents: WrittenFile | undefined): boolean {
  if (contents === undefined) return false;
  const { policies = [], subjects = [] } = contents;
  if (!Array.isArray(policies) || !Array.isArray(subjects)) return false;
  const own = ["policies", "default", "subjects"].some((key) => Object.hasOwn(contents, key));
  return own && policies.every((policy: JsonObject | null) => typeof policy?.id === "string");
}

function parseLoosely(text: string): WrittenFile | undefined {
  try {
    const contents: unknown = parse(text);
    return typeof contents === "object" && contents !== null ? contents : undefined;
  } catch {
    return undefined;
  }
}

function asCommandError(error: unknown): unknown {
  if (!(error instanceof SluiceError) || error.problems.length === 0) return error;
  const count = error.problems.length === 1 ? "1 problem" : `${error.problems.length} problems`;
  return new CommandError([...error.problems.map(renderPolicyProblem), `${count}; nothing was changed`].join("\n"), 1);
}

async function readAll(stdin: TerminalInput | undefined): Promise<string> {
  if (stdin === undefined) throw new CommandError("there is no input to read policies from");
  const parts: Uint8Array[] = [];
  for await (const part of stdin) parts.push(typeof part === "string" ? Buffer.from(part) : part);
  return Buffer.concat(parts).toString("utf8");
}
