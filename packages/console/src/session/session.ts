import type { SessionBody } from "@sluice/protocol/admin";
import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { ApiError } from "../api/api-error.ts";
import { ask } from "../api/ask.ts";

export type Credentials = { readonly token: string } | { readonly code: string };

export function signIn(credentials: Credentials): Promise<SessionBody> {
  return ask("POST", "session", { body: credentials });
}

/** Reports it to the other tabs of this browser: they have lost the cookie too, and their streams may come from servers that do not know. */
export async function signOut(): Promise<void> {
  await ask("DELETE", "session");
  openTabs().postMessage("ended");
}

/** Ends the session of this tab when another one signs out. */
export function followTabs(queries: QueryClient): void {
  openTabs().onmessage = () => forgetSession(queries);
}

let tabs: BroadcastChannel | undefined;
function openTabs(): BroadcastChannel {
  tabs ??= new BroadcastChannel("sluice-session");
  return tabs;
}

/** Undefined: not signed in. */
export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async ({ signal }): Promise<SessionBody | null> => {
    try {
      return await ask<SessionBody>("GET", "session", { signal });
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: 60_000,
});

/** The server no longer accepts this session: nothing else is asked with it, and the sign-in view comes. */
export function forgetSession(queries: QueryClient): void {
  queries.setQueryData(sessionQuery.queryKey, null);
  void queries.cancelQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionQuery.queryKey[0] });
}
