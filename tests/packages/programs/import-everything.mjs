// Imports every given module, and creates limiters. Prints, as JSON, every side effect of that; then it must end without
// help.
/** @returns {Set<string>} */
function look() {
  return new Set([
    ...process.getActiveResourcesInfo().map((resource) => `keeps the process: ${resource}`),
    ...Reflect.ownKeys(globalThis).map((name) => `a global: ${String(name)}`),
    ...process.eventNames().map((name) => `listens to the process: ${String(name)} ×${process.listenerCount(name)}`),
  ]);
}

/** @param {string} specifier */
async function importedNames(specifier) {
  try {
    return Object.keys(await import(specifier));
  } catch (error) {
    return error instanceof Error ? `${"code" in error ? error.code : error.name}: ${error.message}` : String(error);
  }
}

// A pipe for the output is a resource as well, from its first use on.
process.stdout.write("");
const before = look();
const specifiers = process.argv.slice(2);
/** @type {Record<string, string[] | string>} what each module exports, or why it could not be loaded */
const modules = {};
for (const specifier of specifiers) modules[specifier] = await importedNames(specifier);

const { createLimiter, limit, MemoryCounters } = await import("sluice");
const { redis, RedisCounters } = await import("@sluice/redis");
limit("1/h").by("ip").checkSync("203.0.113.7");
createLimiter({ counters: new MemoryCounters() }).checkSync({ dimensions: { ip: "203.0.113.7" } });
// No server listens there, and no check is made.
createLimiter({ counters: redis("redis://127.0.0.1:1") });
createLimiter({ counters: new RedisCounters({ servers: "redis+cluster://127.0.0.1:1" }) });
const { connect } = await import("@sluice/client/http");
connect("http://127.0.0.1:1");

// Resources that loading itself needed are released a turn later.
await new Promise((resolve) => setImmediate(resolve));
const effects = [...look()].filter((one) => !before.has(one));
process.stdout.write(JSON.stringify({ modules, effects }));
