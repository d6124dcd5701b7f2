import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { admin } from "../api/admin.ts";
import { killSwitchQuery } from "../api/queries.ts";
import { formatDuration } from "../format/times.ts";
import { Can } from "../session/can.tsx";
import { Button } from "../ui/button.tsx";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { useNow } from "../ui/now.ts";
import { showDone } from "../ui/toast.tsx";

/** Above every view for as long as no policy decides. */
export function KillSwitchBanner(): ReactNode {
  const { data } = useQuery(killSwitchQuery);
  const queries = useQueryClient();
  const nowMs = useNow();
  const [asking, setAsking] = useState(false);
  if (data === undefined || data.mode === "off") return null;
  if (data.until_ms !== undefined && data.until_ms <= nowMs) return null;
  const end = async (why: string) => {
    await admin.endKillSwitch({ why });
    await queries.invalidateQueries({ queryKey: ["kill-switch"] });
    showDone("The kill switch is off", { about: "Policies decide again." });
  };
  return (
    <div
      className="flex flex-wrap items-center gap-x-3 gap-y-1 bg-denied px-6 py-2 text-sm text-accent-ink"
      role="alert"
    >
      <Icon name="warning" size={18} />
      <strong>The kill switch is on: every check is {data.mode === "open" ? "allowed" : "denied"}.</strong>
      <span className="min-w-0 flex-1">
        {data.reason !== undefined && `“${data.reason}”, `}
        {data.author !== undefined && `by ${data.author}. `}
        {data.until_ms !== undefined && `It ends in ${formatDuration(data.until_ms - nowMs)}.`}
      </span>
      <Can permission="operate">
        <Button onClick={() => setAsking(true)} small>
          Turn off
        </Button>
      </Can>
      <ConfirmDialog
        action="Turn off"
        onClose={() => setAsking(false)}
        onConfirm={end}
        open={asking}
        title="Turn the kill switch off?"
      >
        Policies decide about every check again, on all nodes, within a second.
      </ConfirmDialog>
    </div>
  );
}
