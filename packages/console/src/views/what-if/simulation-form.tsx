import type { RecordingBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { stringify } from "yaml";
import { admin } from "../../api/admin.ts";
import { recordingsQuery, type SimulationQuestion, whatIf } from "../../api/what-if.ts";
import { formatNoun } from "../../format/numbers.ts";
import { Can } from "../../session/can.tsx";
import { useMay } from "../../session/use-session.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { CodeEditor } from "../../ui/code-editor.tsx";
import { Labelled } from "../../ui/field.tsx";
import { PolicyField, usePolicyKnown } from "../../ui/policy-field.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { Select } from "../../ui/select.tsx";
import { showDone, showFailed } from "../../ui/toast.tsx";

interface SimulationFormProps {
  readonly policy: string | undefined;
  readonly recording: string | undefined;
  readonly setRecording: (recording: string | undefined) => void;
  readonly onStarted: (id: string) => void;
}

const startText = "id: api\nlimits:\n  - by: [tenant]\n    windows: [100/m]\n";
/** As much as the server takes, in base64. */
const mostLogBytes = 3 * 1024 * 1024;
const recordForMs = 600_000;

/** What is replayed, and against what. */
export function SimulationForm({ policy, recording, setRecording, onStarted }: SimulationFormProps): ReactNode {
  const [log, setLog] = useState<File>();
  const [kind, setKind] = useState<"policy" | "file">("policy");
  const [now, setNow] = useState<NonNullable<SimulationQuestion["now"]>>("policies");
  const [chosen, setChosen] = useState(policy ?? "");
  const [text, setText] = useCandidate(chosen);
  const [findLimit, setFindLimit] = useState(policy ?? "");
  const [busy, setBusy] = useState(false);
  const { data: recordings } = useQuery(recordingsQuery);
  // They have the subjects of every team, which an editor may not see.
  const mayReplay = useMay("operate");
  const kept = mayReplay ? (recordings?.items ?? []) : [];
  const source = (mayReplay ? recording : undefined) ?? kept.find(({ requests }) => requests > 0)?.id;
  const isLimitMissing = usePolicyKnown(findLimit) === false;
  const hasSource = log !== undefined || source !== undefined;

  async function start(): Promise<void> {
    setBusy(true);
    try {
      const started = await whatIf.simulate({
        source: log === undefined ? { recording: source! } : { log_base64: await readLog(log) },
        candidate: kind === "policy" ? { policies: [text] } : { file: text },
        now,
        ...(findLimit !== "" && { find_limit: findLimit }),
      });
      onStarted(started.id);
    } catch (error) {
      showFailed("The simulation cannot start", error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Card aside={<RecordButton running={kept.find(({ state }) => state === "recording")} />} title="Traffic">
        <div className="flex flex-col gap-3">
          {recordings?.enabled === false ? (
            <p className="text-sm text-ink-faint">
              This server keeps no recordings. Start it with --recordings FOLDER, or choose an access log.
            </p>
          ) : (
            <Select
              disabled={log !== undefined}
              hint={
                !mayReplay
                  ? "Recordings have the subjects of every team; simulating on one takes an operator."
                  : kept.length === 0
                    ? "There is none yet: record some traffic, or choose an access log."
                    : "Kept by this server"
              }
              label="Recording"
              onChange={(id) => setRecording(id === "" ? undefined : id)}
              options={[
                ...(kept.length === 0 ? [{ value: "", label: "No recordings" }] : []),
                ...kept.map((one) => ({ value: one.id, label: describeRecording(one) })),
              ]}
              value={source ?? ""}
            />
          )}
          <Labelled
            hint="nginx, Apache, Envoy, AWS, Caddy, Traefik, Cloudflare or JSON lines; up to 3 MB, gzip or zstd"
            label="Or an access log"
          >
            {(control) => (
              <input
                {...control}
                className="text-sm text-ink-faint file:mr-3 file:cursor-pointer file:rounded-md file:border file:border-line-strong/70 file:bg-surface file:px-3 file:py-1 file:text-sm file:text-ink hover:file:bg-sunken"
                onChange={(event) => setLog(event.target.files?.[0])}
                type="file"
              />
            )}
          </Labelled>
          <Select
            label="Compare with"
            onChange={setNow}
            options={[
              { value: "policies", label: "The policies in force" },
              { value: "recorded", label: "What was decided when it was recorded" },
            ]}
            value={now}
          />
          <PolicyField
            hint="A policy whose limits are tried from a tenth to ten times their size. Empty: none"
            label="Find a limit for"
            placeholder="A policy’s id"
            onChange={setFindLimit}
            value={findLimit}
          />
        </div>
      </Card>
      <Card
        aside={
          <Segmented
            label="What the candidate is"
            onChange={setKind}
            options={[
              { value: "policy", label: "One policy" },
              { value: "file", label: "Whole file" },
            ]}
            value={kind}
          />
        }
        title="Candidate"
      >
        <div className="flex flex-col gap-3">
          {kind === "policy" && (
            <PolicyField
              hideLabel
              label="Policy to change"
              onChange={setChosen}
              placeholder="Policy to change; empty: a new one"
              value={chosen}
            />
          )}
          <CodeEditor
            className="h-64"
            label={kind === "policy" ? "The policy’s new version, in YAML" : "A whole policy file, in YAML"}
            onChange={setText}
            value={text}
          />
          <div className="flex justify-end">
            <Can permission="simulate">
              <Button
                busy={busy}
                disabled={!hasSource || isLimitMissing || text.trim() === "" || (log?.size ?? 0) > mostLogBytes}
                icon="simulate"
                kind="primary"
                onClick={() => void start()}
              >
                Simulate
              </Button>
            </Can>
          </div>
        </div>
      </Card>
    </div>
  );
}

/** The text of a policy as it is in force, until it is edited. */
function useCandidate(id: string): readonly [string, (text: string) => void] {
  const [text, setText] = useState(startText);
  const isKnown = usePolicyKnown(id) === true;
  const { data } = useQuery({
    queryKey: ["policies", "one", id],
    queryFn: ({ signal }) => admin.policy(id, signal),
    enabled: isKnown,
  });
  const document = data?.document;
  useEffect(() => {
    if (document !== undefined) setText(stringify(document));
  }, [document]);
  return [text, setText];
}

function RecordButton({ running }: { readonly running: RecordingBody | undefined }): ReactNode {
  const { data, refetch } = useQuery(recordingsQuery);
  if (data?.enabled !== true) return null;
  const change = (work: Promise<unknown>, done: string): void =>
    void work.then(
      () => {
        showDone(done);
        void refetch();
      },
      (error: unknown) => showFailed("The recording did not change", error),
    );
  return (
    <Can permission="operate">
      {running === undefined ? (
        <Button
          icon="play"
          onClick={() => change(whatIf.record(recordForMs, "for a simulation"), "Recording for ten minutes")}
          small
        >
          Record 10 minutes
        </Button>
      ) : (
        <Button icon="pause" onClick={() => change(whatIf.stop(running.id), "The recording has ended")} small>
          Stop recording ({formatNoun(running.requests, "request")})
        </Button>
      )}
    </Can>
  );
}

function describeRecording({ started_ms, requests, state, share_percent }: RecordingBody): string {
  const sample = share_percent < 100 ? `, ${share_percent} % of subjects` : "";
  const running = state === "recording" ? ", still recording" : "";
  return `${new Date(started_ms).toLocaleString()}: ${formatNoun(requests, "request")}${sample}${running}`;
}

async function readLog(log: File): Promise<string> {
  const bytes = new Uint8Array(await log.arrayBuffer());
  // In parts, because a call has a limited number of arguments.
  let text = "";
  for (let at = 0; at < bytes.length; at += 32_768) text += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  return btoa(text);
}
