import type { Role } from "@sluice/protocol/admin";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { tokens } from "../../api/tokens.ts";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { TextField } from "../../ui/field.tsx";
import { Select } from "../../ui/select.tsx";

const dayMs = 86_400_000;
const lifetimes = [
  ["1", "a day"],
  ["7", "a week"],
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "a year"],
] as const;
const roles: readonly Role[] = ["viewer", "editor", "operator", "admin", "check"];

/** Asks whom a token is for, and then shows it once. */
export function MakeToken({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }): ReactNode {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [team, setTeam] = useState("");
  const [days, setDays] = useState<string>("90");
  const [made, setMade] = useState<{ readonly name: string; readonly secret: string }>();
  const make = async (why: string) => {
    const expiresMs = Date.now() + Number(days) * dayMs;
    const owner = role === "editor" && team.trim() !== "" ? team.trim() : undefined;
    const { token } = await tokens.make({ name: name.trim(), role, team: owner, expires_ms: expiresMs }, { why });
    setMade({ name: token.name, secret: token.token ?? "" });
    setName("");
    await queries.invalidateQueries({ queryKey: ["tokens"] });
  };
  return (
    <>
      <ConfirmDialog
        action="Make the token"
        disabled={name.trim() === ""}
        onClose={onClose}
        onConfirm={make}
        open={open}
        title="Make a token"
      >
        <div className="flex flex-col gap-3">
          <TextField
            hint="Whose it is, for the audit: letters, digits or . _ @ : / -"
            label="Name"
            onChange={(event) => setName(event.target.value)}
            value={name}
          />
          <Select
            label="Role"
            onChange={setRole}
            options={roles.map((value) => ({ value, label: value }))}
            value={role}
          />
          {role === "editor" && (
            <TextField
              hint="It may change the policies of this team."
              label="Team"
              onChange={(event) => setTeam(event.target.value)}
              value={team}
            />
          )}
          <Select
            label="Valid for"
            onChange={setDays}
            options={lifetimes.map(([value, label]) => ({ value, label }))}
            value={days}
          />
        </div>
      </ConfirmDialog>
      <ShownOnce made={made} onClose={() => setMade(undefined)} />
    </>
  );
}

/** The token is in the value of a field, not in the page's markup, and is gone when the dialog is closed. */
function ShownOnce({
  made,
  onClose,
}: {
  readonly made: { readonly name: string; readonly secret: string } | undefined;
  readonly onClose: () => void;
}): ReactNode {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(made?.secret ?? "");
    setCopied(true);
  };
  const close = () => {
    setCopied(false);
    onClose();
  };
  return (
    <Dialog
      about="It is shown only now: the server keeps a digest. Store it where secrets belong."
      actions={
        <>
          <Button icon={copied ? "check" : "copy"} onClick={() => void copy()}>
            {copied ? "Copied" : "Copy"}
          </Button>
          <Button kind="primary" onClick={close}>
            I have stored it
          </Button>
        </>
      }
      onClose={close}
      open={made !== undefined}
      title={`The token ${made?.name ?? ""}`}
    >
      <SecretField secret={made?.secret ?? ""} />
    </Dialog>
  );
}

/** Set as a property: React would write `value` into the markup. */
function SecretField({ secret }: { readonly secret: string }): ReactNode {
  return (
    <input
      aria-label="Token"
      className="h-9 w-full rounded-md border border-line-strong/70 bg-sunken px-2.5 font-mono text-xs"
      onFocus={(event) => event.target.select()}
      readOnly
      ref={(field) => {
        if (field !== null) field.value = secret;
      }}
      spellCheck={false}
      type="text"
    />
  );
}
