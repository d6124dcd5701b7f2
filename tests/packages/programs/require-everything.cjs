// Loads every given module with `require`, and prints those it could not load.
const problems = [];
for (const specifier of process.argv.slice(2)) {
  try {
    if (Object.keys(require(specifier)).length === 0) problems.push(`${specifier} exports nothing`);
  } catch (error) {
    problems.push(`${specifier}: ${error instanceof Error ? error.message : error}`);
  }
}
const { createLimiter } = require("sluice");
if (!createLimiter().checkSync({ dimensions: { ip: "203.0.113.7" } }).allowed) problems.push("denied");
process.stdout.write(JSON.stringify(problems));
