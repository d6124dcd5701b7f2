import type { Database } from "./database.ts";
import type { PolicyStoreOptions } from "./policy-store.ts";

/** Opens the database of a URL, whatever its schema is. */
export async function openDatabase(options: PolicyStoreOptions): Promise<Database> {
  const { url } = options;
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { openPostgres } = await import("./postgres-database.ts");
    return openPostgres(options);
  }
  // `sqlite:///a/file` means the same as `sqlite:/a/file`.
  const file = url.startsWith("sqlite:") ? url.slice("sqlite:".length).replace(/^\/\//, "") : "";
  if (file !== "") {
    const { openSqlite } = await import("./sqlite-database.ts");
    return openSqlite(file);
  }
  // The URL may contain a password, so the message does not repeat it.
  throw new TypeError("a policy store's URL must be postgres://…, postgresql://…, or sqlite: and the path of a file");
}
