import type { SubjectBody, SubjectLimitBody } from "@sluice/protocol/admin";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { subjects } from "../../api/subjects.ts";
import { Can } from "../../session/can.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { PolicyLink } from "../../ui/policy-link.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { showDone } from "../../ui/toast.tsx";
import { restoreOverride } from "./undo.ts";

/** Its custom limits and overrides, with who set each and why. */
export function SubjectSettings({ subject }: { readonly subject: SubjectBody }): ReactNode {
  return (
    <Card title="Custom limits">
      {subject.limits.length === 0 ? (
        <EmptyState icon="edit" title="No custom limit, no override">
          An override gives it another limit for a while, with a reason, and ends automatically.
        </EmptyState>
      ) : (
        <ul className="flex flex-col divide-y divide-line">
          {subject.limits.map((limit) => (
            <LimitItem
              key={`${limit.policy} ${limit.limit ?? ""} ${limit.until_ms ?? ""}`}
              limit={limit}
              subject={subject}
            />
          ))}
        </ul>
      )}
    </Card>
  );
}

function LimitItem({ limit, subject }: { readonly limit: SubjectLimitBody; readonly subject: SubjectBody }): ReactNode {
  const [ending, setEnding] = useState(false);
  const queries = useQueryClient();
  const refresh = () => queries.invalidateQueries({ queryKey: ["subject"] });
  const { policy, limit: name, windows, until_ms: untilMs, reason, author, at_ms: atMs } = limit;
  const end = async (why: string) => {
    const { subject: changed } = await subjects.deleteOverride(
      subject,
      { policy, limit: name },
      { expected: subject.version, why },
    );
    await refresh();
    showDone("The override has ended", {
      about: `The limits of ${policy} apply again.`,
      onUndo: async () => {
        await restoreOverride(subject, [limit], { policy, limit: name }, changed.version);
        await refresh();
      },
    });
  };
  return (
    <li className="flex flex-col gap-1 py-2.5 text-sm first:pt-0 last:pb-0">
      <div className="flex flex-wrap items-center gap-2">
        <PolicyLink id={policy} />
        {name !== undefined && <span className="text-xs text-ink-faint">{name}</span>}
        <span className="font-mono text-xs">{windows.join(", ")}</span>
        <Badge tone={untilMs === undefined ? "accent" : "warning"}>
          {untilMs === undefined ? "custom" : "override"}
        </Badge>
        {untilMs !== undefined && (
          <Can permission="operate">
            <Button className="ml-auto" onClick={() => setEnding(true)} small>
              End now
            </Button>
          </Can>
        )}
      </div>
      <p className="text-xs text-ink-faint">
        {reason !== "" && `“${reason}”, `}by {author} <RelativeTime ms={atMs} />
        {untilMs !== undefined && (
          <>
            {"; ends "}
            <RelativeTime ms={untilMs} />
          </>
        )}
      </p>
      <ConfirmDialog
        action="End the override"
        onClose={() => setEnding(false)}
        onConfirm={end}
        open={ending}
        title="End the override now?"
      >
        {subject.dimension} {subject.value} gets the limits of {policy} again, on every node.
      </ConfirmDialog>
    </li>
  );
}
