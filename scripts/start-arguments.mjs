import path from "node:path";

/**
 * What `npm start` serves with. Unless told otherwise policies are kept in a store of the clone's own, which begins with those
 * in config/policies.yaml; who names a policy file is served by that.
 *
 * @param {readonly string[]} args
 * @param {Readonly<Record<string, string | undefined>>} env
 * @param {string} root
 * @returns {readonly string[]}
 */
export function startArguments(args, env, root) {
  /** @param {string} flag @param {string} variable */
  const isChosen = (flag, variable) =>
    Boolean(env[variable]) || args.some((arg) => arg === flag || arg.startsWith(`${flag}=`));
  if (isChosen("--config", "RATE_LIMIT_CONFIG") || isChosen("--store", "SLUICE_STORE_URL")) return args;
  const store = ["--store", `sqlite:${path.join(root, ".sluice", "policies.db")}`];
  const seed = isChosen("--seed", "SLUICE_SEED") ? [] : ["--seed", path.join(root, "config", "policies.yaml")];
  return [...store, ...seed, ...args];
}
