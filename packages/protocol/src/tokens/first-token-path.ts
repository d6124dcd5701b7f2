import { resolve } from "node:path";

/** The settings of a server that say where its first admin token is written. */
export interface FirstTokenSettings {
  readonly adminTokenFile?: string | undefined;
  /** The URL of the policy store. */
  readonly store?: string | undefined;
}

/** Where a server writes the first token of its policy store, and where the command line looks for it. */
export function firstTokenPath({ adminTokenFile, store }: FirstTokenSettings): string {
  return resolve(adminTokenFile ?? besideStore(store ?? ""));
}

function besideStore(url: string): string {
  const file = /^sqlite:(?:\/\/)?(.+)$/.exec(url)?.[1];
  return file === undefined || file === ":memory:" ? "sluice-admin-token" : `${file}-admin-token`;
}
