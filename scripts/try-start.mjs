// Checks that `npm start` serves: starts it, asks it to decide, and stops it. CI runs this; arguments are passed on to npm start.
import { spawn } from "node:child_process";
import { repositoryRoot } from "./ensure-installed.mjs";

/** Installing on a slow machine takes minutes. */
const patienceMs = 900_000;

const child = spawn("npm", ["start", "--", ...process.argv.slice(2)], {
  cwd: repositoryRoot,
  // A group, because npm starts a shell, and that starts Node.
  detached: true,
  stdio: ["ignore", "pipe", "inherit"],
});
let printed = "";
/** @type {Promise<string>} */
const url = new Promise((resolve, reject) => {
  child.stdout.setEncoding("utf8").on("data", (text) => {
    process.stdout.write(text);
    printed += text;
    const found = /^Sluice \S+ listens on (http:\S+)$/m.exec(printed)?.[1];
    if (found !== undefined) resolve(found);
  });
  child.once("error", reject);
  child.once("close", (code) => reject(new Error(`npm start ended with ${code}`)));
  setTimeout(
    () => reject(new Error(`npm start does not serve after ${patienceMs / 60_000} minutes`)),
    patienceMs,
  ).unref();
});

try {
  const body = JSON.stringify({ dimensions: { ip: "203.0.113.7", endpoint: "/login", method: "POST" } });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${await url}/v1/check`, { method: "POST", headers, body });
  const decision = /** @type {{ allowed?: boolean }} */ (await answer.json());
  if (answer.status !== 200 || decision.allowed !== true)
    throw new Error(`a check is answered by ${answer.status} ${JSON.stringify(decision)}`);
  const ended = new Promise((resolve) => child.once("close", resolve));
  signal("SIGTERM");
  await ended;
  process.stdout.write("npm start serves\n");
} catch (error) {
  signal("SIGKILL");
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}

/** @param {NodeJS.Signals} name */
function signal(name) {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, name);
  } catch {
    // It has ended already.
  }
}
