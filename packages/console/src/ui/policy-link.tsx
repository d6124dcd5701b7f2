import type { ReactNode } from "react";
import { PathLink } from "./path-link.tsx";

/** A policy's id, as a link to its page. The default has none. */
export function PolicyLink({ id }: { readonly id: string }): ReactNode {
  if (id === "" || id === "default") return id;
  return (
    <PathLink
      className="font-medium text-accent underline decoration-1 underline-offset-2 hover:decoration-2"
      href={`/policies/${encodeURIComponent(id)}`}
    >
      {id}
    </PathLink>
  );
}
