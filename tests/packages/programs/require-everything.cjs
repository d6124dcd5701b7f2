// Loads every given module with `require`, and prints those it could not load. Each must be the one that `import` gives, so that a
// class exists once; after --apart, where this Node takes CommonJS for `require`, each must have the same names instead.
const [first, ...rest] = process.argv.slice(2);
const apart = first === "--apart";

/** @param {string} specifier */
async function findProblem(specifier) {
  try {
    const required = require(specifier);
    if (Object.keys(required).length === 0) return `${specifier} exports nothing`;
    const imported = await import(specifier);
    const isSame = (/** @type {string} */ name) => (apart ? name in required : required[name] === imported[name]);
    const others = Object.keys(imported).filter(
      (name) => !["default", "module.exports"].includes(name) && !isSame(name),
    );
    if (apart !== require.resolve(specifier).endsWith(".cjs")) return `${specifier} is ${require.resolve(specifier)}`;
    return others.length === 0 ? undefined : `${specifier} has another ${others}`;
  } catch (error) {
    return `${specifier}: ${error instanceof Error ? error.message : error}`;
  }
}

async function main() {
  const problems = [];
  for (const specifier of apart ? rest : [first, ...rest]) {
    const problem = await findProblem(String(specifier));
    if (problem !== undefined) problems.push(problem);
  }
  const { createLimiter } = require("sluice");
  if (!createLimiter().checkSync({ dimensions: { ip: "203.0.113.7" } }).allowed) problems.push("denied");
  process.stdout.write(JSON.stringify(problems));
}

void main();
