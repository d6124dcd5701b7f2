import type { SessionBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import type { Permission } from "./permissions.ts";
import { sessionQuery } from "./session.ts";

/** Who is signed in. Null: the caller is not signed in. Within the shell there is always a session. */
export function useSession(): SessionBody | null | undefined {
  return useQuery(sessionQuery).data;
}

/** Whether to offer something. What a role may not do is not shown. */
export function useMay(permission: Permission): boolean {
  return useSession()?.may.includes(permission) ?? false;
}
