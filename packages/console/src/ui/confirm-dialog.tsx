import { type FormEvent, type ReactNode, useEffect, useId, useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorNotice } from "./error-notice.tsx";
import { TextField } from "./field.tsx";

interface ConfirmDialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  /** What will happen, and to whom. */
  readonly children?: ReactNode;
  /** The verb on the button: "Delete policy". */
  readonly action: string;
  readonly danger?: boolean;
  /** The reason is for the audit. */
  readonly reason?: "required" | "optional" | "none";
  /** A word that must be typed first, for what is hard to undo. */
  readonly typed?: string;
  /** Rejects with what went wrong, which the dialog shows. */
  readonly onConfirm: (why: string) => Promise<unknown>;
  /** Other fields may still be incomplete. */
  readonly disabled?: boolean;
}

/** Asks before a change, for a reason and where it matters for a typed word. */
export function ConfirmDialog({
  open,
  onClose,
  title,
  children,
  action,
  danger = false,
  reason = "required",
  typed,
  onConfirm,
  disabled = false,
}: ConfirmDialogProps): ReactNode {
  const form = useId();
  const [why, setWhy] = useState("");
  const [word, setWord] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (!open) return;
    setWhy("");
    setWord("");
    setError(undefined);
  }, [open]);

  const complete = (reason !== "required" || why.trim() !== "") && (typed === undefined || word === typed) && !disabled;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!complete || busy) return;
    setBusy(true);
    setError(undefined);
    try {
      await onConfirm(why.trim());
      onClose();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button busy={busy} disabled={!complete} form={form} kind={danger ? "danger" : "primary"} type="submit">
            {action}
          </Button>
        </>
      }
      onClose={onClose}
      open={open}
      title={title}
    >
      <form className="flex flex-col gap-3 pb-2" id={form} onSubmit={(event) => void submit(event)}>
        {children !== undefined && <div className="text-sm text-ink-soft">{children}</div>}
        {reason !== "none" && (
          <TextField
            hint="Appears in the history and in the audit."
            label={reason === "required" ? "Reason" : "Reason (optional)"}
            maxLength={1_000}
            onChange={(event) => setWhy(event.target.value)}
            value={why}
          />
        )}
        {typed !== undefined && (
          <TextField
            className="font-mono"
            label={`Type ${typed} to confirm`}
            onChange={(event) => setWord(event.target.value)}
            value={word}
          />
        )}
        {error !== undefined && <ErrorNotice error={error} what="The change was not made" />}
      </form>
    </Dialog>
  );
}
