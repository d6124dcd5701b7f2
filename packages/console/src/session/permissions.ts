import type { SessionBody } from "@sluice/protocol/admin";

/** What a caller may do. The server refuses everything else, whatever the console offers. */
export type Permission = SessionBody["may"][number];

/** The least role that has a permission, to name it to those who lack it. */
export const leastRole: Readonly<Record<Permission, string>> = {
  check: "check",
  credit: "check",
  read: "viewer",
  simulate: "editor",
  edit: "editor",
  operate: "operator",
  administer: "admin",
};
