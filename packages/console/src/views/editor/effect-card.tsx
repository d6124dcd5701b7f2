import type { SimulationBody } from "@sluice/protocol/admin";
import type { HurtSubject, SimulationReport } from "@sluice/simulate";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import {
  isUnderway,
  recordingsQuery,
  type SimulationDocument,
  type SimulationQuestion,
  whatIf,
} from "../../api/what-if.ts";
import { formatCount, formatNoun, formatShare } from "../../format/numbers.ts";
import { formatMoment } from "../../format/times.ts";
import { splitList } from "../../policy/policy-form.ts";
import { useMay } from "../../session/use-session.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { Labelled, TextField } from "../../ui/field.tsx";
import { Select } from "../../ui/select.tsx";
import { Stat } from "../../ui/stat.tsx";
import { readFileBase64 } from "./read-file.ts";

const uploaded = "upload";

/** What the edited policy would have done to recorded traffic. */
export function EffectCard({ text, valid }: { readonly text: string; readonly valid: boolean }): ReactNode {
  const { data: recordings, error: unavailable } = useQuery({ ...recordingsQuery, retry: false });
  const [source, setSource] = useState("");
  const [file, setFile] = useState<File>();
  const [map, setMap] = useState("");
  const run = useRun(text);
  const [maySimulate, mayReplay] = [useMay("simulate"), useMay("operate")];
  if (unavailable !== null || !maySimulate) return null;
  const usable = (mayReplay ? (recordings?.items ?? []) : []).filter(
    ({ state, requests }) => state === "done" && requests > 0,
  );
  const chosen = source === "" ? (usable[0]?.id ?? uploaded) : source;
  const start = () =>
    run.start(async () => ({
      source: chosen === uploaded ? { log_base64: await readFileBase64(file!) } : { recording: chosen },
      ...(chosen === uploaded && map !== "" && { map: splitList(map) }),
      candidate: { policies: [text] },
    }));
  return (
    <Card
      aside={
        <Button
          busy={run.busy}
          disabled={!valid || (chosen === uploaded && file === undefined)}
          icon="simulate"
          onClick={() => void start()}
          small
        >
          {run.busy ? `Simulating, ${formatShare(run.simulation?.progress ?? 0)}` : "Simulate"}
        </Button>
      }
      title="Effect on recorded traffic"
    >
      <div className="grid items-start gap-3 pb-3 md:grid-cols-3">
        <Select
          label="Traffic"
          onChange={setSource}
          options={[
            ...usable.map(({ id, started_ms: startedMs, requests }) => ({
              value: id,
              label: `Recording of ${formatMoment(startedMs)}, ${formatNoun(requests, "request")}`,
            })),
            { value: uploaded, label: "An access log from this computer" },
          ]}
          value={chosen}
        />
        {chosen === uploaded && (
          <>
            <Labelled
              hint="nginx, Apache, Envoy, ALB, Caddy, Traefik, JSON lines; also gzip and zstd, up to 3 MB"
              label="Log file"
            >
              {(control) => (
                <input
                  {...control}
                  className="text-sm"
                  onChange={(event) => setFile(event.target.files?.[0])}
                  type="file"
                />
              )}
            </Labelled>
            <TextField
              className="font-mono"
              hint="How dimensions are found, with commas"
              label="Mapping"
              onChange={(event) => setMap(event.target.value)}
              placeholder="tenant=header:x-tenant"
              value={map}
            />
          </>
        )}
      </div>
      {run.error !== undefined && <ErrorNotice error={run.error} what="The simulation failed" />}
      {run.effect === undefined ? (
        run.error === undefined && (
          <EmptyState icon="simulate" title="Nothing is simulated yet">
            Simulate replays traffic against the policies in force and against this edit, in the engine itself, and
            changes nothing.
          </EmptyState>
        )
      ) : (
        <Effect effect={run.effect} stale={run.text !== text} />
      )}
    </Card>
  );
}

function useRun(text: string) {
  const [simulation, setSimulation] = useState<SimulationBody>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [about, setAbout] = useState(text);
  const start = async (request: () => Promise<SimulationQuestion>) => {
    setBusy(true);
    setError(undefined);
    setAbout(text);
    try {
      let current = await whatIf.simulate(await request());
      while (isUnderway(current)) {
        setSimulation(current);
        await new Promise((resolve) => setTimeout(resolve, 500));
        current = await whatIf.find(current.id);
      }
      setSimulation(current);
      if (current.state !== "done") throw new Error(current.error?.message ?? "it was cancelled");
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const document = simulation?.document as SimulationDocument | undefined;
  return { start, busy, error, simulation, text: about, effect: document?.result };
}

const hurtColumns: readonly TableColumn<HurtSubject>[] = [
  { id: "subject", title: "Subject", cell: ({ subject }) => <code className="font-mono text-xs">{subject}</code> },
  { id: "limit", title: "Limit", cell: ({ policy, scope }) => `${policy}, ${scope}` },
  {
    id: "newly",
    title: "Newly denied",
    right: true,
    width: "8rem",
    sortBy: (hurt) => hurt.newly_denied,
    cell: (hurt) => formatCount(hurt.newly_denied),
  },
  {
    id: "share",
    title: "Of all traffic",
    right: true,
    width: "8rem",
    sortBy: (hurt) => hurt.traffic_share,
    cell: (hurt) => formatShare(hurt.traffic_share),
  },
];

function Effect({ effect, stale }: { readonly effect: SimulationReport; readonly stale: boolean }): ReactNode {
  const { now, candidate, flips, hurt, requests, notes } = effect;
  return (
    <div aria-live="polite" className="flex flex-col gap-3">
      {stale && (
        <p className="text-sm text-warning">
          You edited the policy since this was simulated. Simulate again to see its effect.
        </p>
      )}
      <dl className="grid grid-cols-2 gap-3 lg:grid-cols-4">
        <Stat
          about={`of ${formatNoun(requests, "request")}, ${formatCount(now.denied)}`}
          label="Denied now"
          value={formatShare(now.denied_share)}
        />
        <Stat
          about={formatNoun(candidate.denied, "request")}
          label="Denied by this edit"
          tone={candidate.denied > now.denied ? "denied" : "good"}
          value={formatShare(candidate.denied_share)}
        />
        <Stat
          about={`${formatCount(flips.denied_allowed)} newly allowed`}
          label="Newly denied"
          tone={flips.allowed_denied > 0 ? "denied" : "plain"}
          value={formatCount(flips.allowed_denied)}
        />
        <Stat
          about="that are allowed now and would be denied"
          label="Subjects newly hurt"
          value={`${hurt.exact ? "" : "at least "}${formatCount(hurt.subjects)}`}
        />
      </dl>
      {hurt.top.length > 0 && (
        <DataTable
          columns={hurtColumns}
          label="Subjects newly hurt"
          rowKey={({ policy, scope, subject }) => `${policy} ${scope} ${subject}`}
          rows={hurt.top}
        />
      )}
      {notes.length > 0 && (
        <ul className="list-disc pl-5 text-xs text-ink-faint">
          {notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
