import { migrations as allMigrations } from "./migrations/index.ts";
import type { Migration } from "./migrations/migration.ts";
import { openDatabase } from "./open-database.ts";
import type { PolicyStore, PolicyStoreOptions } from "./policy-store.ts";

/**
 * Opens a policy store, and brings its schema to the version that this program knows, even if several nodes do so at once. Rejects
 * with `PolicyStoreUnavailable` within the timeouts, with `SchemaTooNew`, and with a `TypeError` for a URL that is not valid.
 */
export function openPolicyStore(options: PolicyStoreOptions): Promise<PolicyStore> {
  return openPolicyStoreAt(options, allMigrations);
}

/** `openPolicyStore` of a program that knows these migrations. */
export async function openPolicyStoreAt(
  options: PolicyStoreOptions,
  migrations: readonly Migration[],
): Promise<PolicyStore> {
  // The libraries below take a quarter of a second to load, and many programs that could open a store never do.
  const [{ createPolicyStore }, { migrate }] = await Promise.all([
    import("./create-policy-store.ts"),
    import("./migrate.ts"),
  ]);
  const database = await openDatabase(options);
  try {
    await migrate(database, migrations);
  } catch (error) {
    await database.close();
    throw error;
  }
  return createPolicyStore(database);
}
