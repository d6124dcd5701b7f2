import { type Permission, permissions, type Role, roles } from "@sluice/protocol/admin";

export { type Permission, permissions, type Role, roles };

export const rolePermissions: Readonly<Record<Role, readonly Permission[]>> = {
  check: ["check", "credit"],
  viewer: ["read"],
  editor: ["read", "simulate", "edit"],
  operator: ["check", "credit", "read", "simulate", "operate"],
  admin: permissions,
};

/** The least role that has a permission, for error messages. */
export const leastRole: Readonly<Record<Permission, Role>> = {
  check: "check",
  credit: "check",
  read: "viewer",
  simulate: "editor",
  edit: "editor",
  operate: "operator",
  administer: "admin",
};
