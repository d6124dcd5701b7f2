import { access, readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { firstTokenPath } from "@sluice/protocol/tokens";

/**
 * The file into which a server here wrote its first token, by the settings of that server, or by its name in this folder or in
 * that of `npm start`. It is for its owner to use, and not read.
 */
export async function findFirstTokenFile(
  env: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  const adminTokenFile = env.SLUICE_ADMIN_TOKEN_FILE || undefined;
  const store = env.SLUICE_STORE_URL || undefined;
  const path = firstTokenPath({ adminTokenFile, store });
  const there = await access(path).then(
    () => true,
    () => false,
  );
  if (there) return relative("", path);
  if (adminTokenFile !== undefined || store !== undefined) return undefined;
  for (const folder of ["", ".sluice"]) {
    const names = await readdir(folder || ".").catch(() => []);
    const found = names.find((name) => name.endsWith("-admin-token") && !name.startsWith("."));
    if (found !== undefined) return join(folder, found);
  }
  return undefined;
}
