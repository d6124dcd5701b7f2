import { type Role, roles } from "@sluice/protocol/admin";

/**
 * What a caller may do: decide, charge, and undo that by a receipt; credit counters without one; read; change policies
 * of its team; change counters, subjects and the kill switch; change everything.
 */
export const permissions = ["check", "credit", "read", "edit", "operate", "administer"] as const;
export type Permission = (typeof permissions)[number];

export { type Role, roles };

export const rolePermissions: Readonly<Record<Role, readonly Permission[]>> = {
  check: ["check", "credit"],
  viewer: ["read"],
  editor: ["read", "edit"],
  operator: ["check", "credit", "read", "operate"],
  admin: permissions,
};

/** The least role that has a permission, for error messages. */
export const leastRole: Readonly<Record<Permission, Role>> = {
  check: "check",
  credit: "check",
  read: "viewer",
  edit: "editor",
  operate: "operator",
  administer: "admin",
};
