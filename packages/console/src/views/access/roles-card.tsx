import type { ReactNode } from "react";
import { useSession } from "../../session/use-session.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card } from "../../ui/card.tsx";

const roles = [
  ["viewer", "Reads everything except tokens."],
  ["editor", "Reads, and changes the policies that its team owns, and their rollouts. Simulates on access logs."],
  ["operator", "Reads, and changes subjects, counters and the kill switch. Records and simulates."],
  ["admin", "Everything, tokens among it."],
  ["check", "Decides and charges at the decision port. It has nothing to see here."],
] as const;

/** What each role may do. The server refuses the rest, whatever a page offers. */
export function RolesCard(): ReactNode {
  const session = useSession();
  return (
    <Card title="Roles">
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-2 text-sm">
        {roles.map(([role, may]) => (
          <div className="contents" key={role}>
            <dt className="flex items-center gap-2 font-medium">
              {role}
              {session?.role === role && <Badge tone="accent">yours</Badge>}
            </dt>
            <dd className="text-ink-soft">{may}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
