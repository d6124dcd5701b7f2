import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { admin } from "../../api/admin.ts";
import { turnOnKillSwitch } from "../../api/kill-switch.ts";
import { killSwitchQuery } from "../../api/queries.ts";
import { formatDuration } from "../../format/times.ts";
import { Can } from "../../session/can.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { DurationSelect } from "../../ui/duration-select.tsx";
import { useNow } from "../../ui/now.ts";
import { showDone } from "../../ui/toast.tsx";

const dayMs = 86_400_000;
type Mode = "open" | "closed";

/** Gives every check the same answer, for a time. Turned on only with a typed word and a reason. */
export function KillSwitchCard(): ReactNode {
  const { data } = useQuery(killSwitchQuery);
  const nowMs = useNow();
  const [asking, setAsking] = useState<Mode>();
  const isOn = data !== undefined && data.mode !== "off" && (data.until_ms === undefined || data.until_ms > nowMs);
  return (
    <Card
      aside={<Badge tone={isOn ? "denied" : "good"}>{isOn ? `on: ${data.mode}` : "off"}</Badge>}
      title="Kill switch"
    >
      {isOn ? (
        <p className="text-sm">
          Every check is {data.mode === "open" ? "allowed" : "denied"}, by {data.author}: “{data.reason}”.
          {data.until_ms !== undefined && ` It ends in ${formatDuration(data.until_ms - nowMs)}.`} Turn it off in the
          banner above.
        </p>
      ) : (
        <p className="text-sm text-ink-soft">
          Gives every check on all nodes the same answer within a second, and ends automatically. Policies, rollouts and
          counters stay as they are.
        </p>
      )}
      <Can permission="operate">
        {!isOn && (
          <div className="mt-3 flex flex-wrap gap-2">
            <Button kind="danger" onClick={() => setAsking("open")}>
              Allow everything…
            </Button>
            <Button kind="danger" onClick={() => setAsking("closed")}>
              Deny everything…
            </Button>
          </div>
        )}
        <TurnOnDialog mode={asking ?? "open"} onClose={() => setAsking(undefined)} open={asking !== undefined} />
      </Can>
    </Card>
  );
}

function TurnOnDialog({
  mode,
  open,
  onClose,
}: {
  readonly mode: Mode;
  readonly open: boolean;
  readonly onClose: () => void;
}): ReactNode {
  const queries = useQueryClient();
  const [forMs, setForMs] = useState(900_000);
  const refresh = () => queries.invalidateQueries({ queryKey: ["kill-switch"] });
  const confirm = async (why: string) => {
    await turnOnKillSwitch({ mode, for_ms: forMs }, { why });
    await refresh();
    showDone("The kill switch is on", {
      about: `Every check is ${mode === "open" ? "allowed" : "denied"} for ${formatDuration(forMs)}.`,
      onUndo: async () => {
        await admin.endKillSwitch({ why: "Undone in the console" });
        await refresh();
      },
    });
  };
  return (
    <ConfirmDialog
      action={mode === "open" ? "Allow everything" : "Deny everything"}
      danger
      onClose={onClose}
      onConfirm={confirm}
      open={open}
      title={mode === "open" ? "Allow every check?" : "Deny every check?"}
      typed={mode === "open" ? "allow everything" : "deny everything"}
    >
      <div className="flex flex-col gap-3">
        <p>
          {mode === "open"
            ? "No limit holds on any node until it ends: what you protect takes all traffic."
            : "Every caller of every node is refused until it ends."}
        </p>
        <DurationSelect label="Ends after" mostMs={dayMs} onChange={setForMs} value={forMs} />
      </div>
    </ConfirmDialog>
  );
}
