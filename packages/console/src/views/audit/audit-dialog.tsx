import type { AuditEntryBody } from "@sluice/protocol/admin";
import type { ReactNode } from "react";
import { stringify } from "yaml";
import { formatMoment } from "../../format/times.ts";
import { Badge } from "../../ui/badge.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { DiffView } from "../../ui/diff-view.tsx";

/** One entry: who, from where, why, and what was there before and after. */
export function AuditDialog({
  entry,
  onClose,
}: {
  readonly entry: AuditEntryBody | undefined;
  readonly onClose: () => void;
}): ReactNode {
  return (
    <Dialog
      onClose={onClose}
      open={entry !== undefined}
      title={entry === undefined ? "Entry" : `${entry.action} ${entry.target}`}
      wide
    >
      {entry !== undefined && (
        <div className="flex flex-col gap-4 pb-3">
          <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5 text-sm">
            <dt className="text-ink-faint">When</dt>
            <dd>{formatMoment(entry.at_ms)}</dd>
            <dt className="text-ink-faint">Who</dt>
            <dd>
              {entry.actor}{" "}
              <span className="text-ink-faint">
                ({entry.role}
                {entry.from !== "" && `, from ${entry.from}`})
              </span>
            </dd>
            <dt className="text-ink-faint">Why</dt>
            <dd className="break-words">{entry.why || "–"}</dd>
            <dt className="text-ink-faint">Outcome</dt>
            <dd className="flex items-center gap-2">
              <Badge tone={entry.outcome === "done" ? "good" : "denied"}>{entry.outcome}</Badge>
              {entry.generation !== undefined && `generation ${entry.generation}`}
            </dd>
          </dl>
          {entry.before === undefined && entry.after === undefined ? (
            <p className="text-sm text-ink-faint">Nothing was stored before or after.</p>
          ) : (
            <DiffView
              after={render(entry.after)}
              afterLabel="After"
              before={render(entry.before)}
              beforeLabel="Before"
              label="Before and after"
            />
          )}
        </div>
      )}
    </Dialog>
  );
}

function render(value: unknown): string {
  return value === undefined ? "" : stringify(value);
}
