/**
 * What a caller may do: decide, charge and give back; look; change policies of their team; change counters, subjects and the
 * kill switch; change everything.
 */
export const permissions = ["check", "read", "edit", "operate", "administer"] as const;
export type Permission = (typeof permissions)[number];

export const roles = ["check", "viewer", "editor", "operator", "admin"] as const;
export type Role = (typeof roles)[number];

export const permissionsOf: Readonly<Record<Role, readonly Permission[]>> = {
  check: ["check"],
  viewer: ["read"],
  editor: ["read", "edit"],
  operator: ["check", "read", "operate"],
  admin: permissions,
};

/** The least role that has a permission, for telling who lacks it. */
export const leastRole: Readonly<Record<Permission, Role>> = {
  check: "check",
  read: "viewer",
  edit: "editor",
  operate: "operator",
  administer: "admin",
};
