import path from "node:path";

/**
 * The arguments that `npm start` serves with. By default, policies are in the clone's own store, seeded from
 * config/policies.yaml. If a policy file or a store is given, that is used instead.
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
