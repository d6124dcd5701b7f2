import { resolve } from "node:path";

/** The address of a policy store, without user and password: `postgres://host:5432/database`, `sqlite:/a/file`. */
export function renderStoreUrl(url: string): string {
  const file = /^sqlite:(?:\/\/)?(.+)$/.exec(url)?.[1];
  if (file !== undefined) return file === ":memory:" ? "sqlite::memory:" : `sqlite:${resolve(file)}`;
  try {
    const { host, pathname } = new URL(url);
    return `postgres://${host}${pathname}`;
  } catch {
    // Several hosts, or a socket: the operator knows which.
    return "postgres";
  }
}
