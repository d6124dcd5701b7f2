import type { TokenBody } from "@sluice/protocol/admin";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { tokens } from "../../api/tokens.ts";
import { formatMoment } from "../../format/times.ts";
import { leastRole } from "../../session/permissions.ts";
import { useMay, useSession } from "../../session/use-session.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { useNow } from "../../ui/now.ts";
import { Page } from "../../ui/page.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { showDone } from "../../ui/toast.tsx";
import { MakeToken } from "./make-token.tsx";
import { RolesCard } from "./roles-card.tsx";

type TokenState = readonly [text: string, tone: Tone];

function stateOf({ revoked_ms, expires_ms }: TokenBody, nowMs: number): TokenState {
  if (revoked_ms !== undefined) return ["revoked", "denied"];
  if (expires_ms !== undefined && expires_ms <= nowMs) return ["expired", "warning"];
  return ["valid", "good"];
}

/** Who may do what: tokens, and what their roles permit. */
export default function AccessView(): ReactNode {
  const mayAdminister = useMay("administer");
  const session = useSession();
  const [making, setMaking] = useState(false);
  return (
    <Page
      about={
        session != null &&
        `You are ${session.name}, with the role ${session.role}${session.team === undefined ? "" : ` for the team ${session.team}`}.`
      }
      actions={
        mayAdminister && (
          <Button icon="plus" kind="primary" onClick={() => setMaking(true)}>
            Make a token…
          </Button>
        )
      }
      title="Access"
    >
      {mayAdminister ? (
        <Tokens />
      ) : (
        <Card title="Tokens">
          <EmptyState icon="access" title="Tokens are for admins">
            Your role may not list, make or revoke tokens. Ask someone with the role {leastRole.administer}.
          </EmptyState>
        </Card>
      )}
      <RolesCard />
      <MakeToken onClose={() => setMaking(false)} open={making} />
    </Page>
  );
}

function Tokens(): ReactNode {
  const queries = useQueryClient();
  const session = useSession();
  const [revoking, setRevoking] = useState<TokenBody>();
  const { data, error, isLoading, refetch } = useQuery({
    queryKey: ["tokens"],
    queryFn: ({ signal }) => tokens.list(signal),
  });
  const revoke = async (why: string) => {
    await tokens.revoke(revoking!.id, { why });
    await queries.invalidateQueries({ queryKey: ["tokens"] });
    showDone(`The token ${revoking!.name} is revoked`, {
      about: "Every server refuses it within a second. It cannot be brought back.",
    });
  };
  // To the minute: the columns stay the same between.
  const minute = Math.floor(useNow() / 60_000);
  const columns = useMemo(() => columnsFor(minute * 60_000, setRevoking), [minute]);
  return (
    <>
      {error !== null && (
        <ErrorNotice error={error} onRetry={() => void refetch()} what="The tokens cannot be listed" />
      )}
      <Card flush title="Tokens">
        {isLoading && <SkeletonRows />}
        {data !== undefined && <DataTable columns={columns} label="Tokens" rowKey={({ id }) => id} rows={data.items} />}
      </Card>
      <ConfirmDialog
        action="Revoke"
        danger
        onClose={() => setRevoking(undefined)}
        onConfirm={revoke}
        open={revoking !== undefined}
        title={`Revoke ${revoking?.name ?? ""}?`}
      >
        {revoking?.name === session?.name ? "You are signed in with it: you are signed out at once. " : ""}
        Its holder is refused within a second, on every server. This cannot be undone; make another one instead.
      </ConfirmDialog>
    </>
  );
}

function columnsFor(nowMs: number, onRevoke: (token: TokenBody) => void): readonly TableColumn<TokenBody>[] {
  return [
    {
      id: "name",
      title: "Name",
      cell: ({ name }) => <span className="font-medium">{name}</span>,
      sortBy: ({ name }) => name,
    },
    {
      id: "role",
      title: "Role",
      width: "9rem",
      cell: ({ role, team }) => `${role}${team === undefined ? "" : ` of ${team}`}`,
      sortBy: ({ role }) => role,
    },
    {
      id: "state",
      title: "State",
      width: "7rem",
      cell: (token) => {
        const [text, tone] = stateOf(token, nowMs);
        return <Badge tone={tone}>{text}</Badge>;
      },
      sortBy: (token) => stateOf(token, nowMs)[0],
    },
    {
      id: "made",
      title: "Made",
      width: "13rem",
      cell: ({ created_by, created_ms }) => (
        <>
          by {created_by} <RelativeTime ms={created_ms} />
        </>
      ),
      sortBy: ({ created_ms }) => created_ms,
    },
    {
      id: "used",
      title: "Last used",
      width: "7.5rem",
      cell: ({ last_used_ms }) => (last_used_ms === undefined ? "never" : <RelativeTime ms={last_used_ms} />),
      sortBy: ({ last_used_ms = 0 }) => last_used_ms,
    },
    {
      id: "expires",
      title: "Expires",
      width: "7.5rem",
      cell: ({ expires_ms }) =>
        expires_ms === undefined ? (
          "never"
        ) : (
          <span title={formatMoment(expires_ms)}>{formatMoment(expires_ms).slice(0, 10)}</span>
        ),
      sortBy: ({ expires_ms = Number.MAX_SAFE_INTEGER }) => expires_ms,
    },
    {
      id: "revoke",
      title: "",
      right: true,
      width: "7rem",
      cell: (token) =>
        token.revoked_ms === undefined && (
          <Button aria-label={`Revoke ${token.name}`} kind="danger" onClick={() => onRevoke(token)} small>
            Revoke…
          </Button>
        ),
    },
  ];
}
