import type { ReactNode } from "react";
import type { Permission } from "./permissions.ts";
import { useMay } from "./use-session.ts";

/** Shows its children to callers that have a permission. */
export function Can({
  permission,
  children,
}: {
  readonly permission: Permission;
  readonly children: ReactNode;
}): ReactNode {
  return useMay(permission) ? children : null;
}
