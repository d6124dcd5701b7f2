import type { ReactNode } from "react";
import { adviseOn, errorCode, errorMessage, isTemporary } from "../api/advise.ts";
import { ApiError } from "../api/api-error.ts";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

interface ErrorNoticeProps {
  readonly error: unknown;
  /** What could not be done: "The policies cannot be shown". */
  readonly what: string;
  readonly onRetry?: (() => void) | undefined;
}

/** What happened, what it means and what to do. */
export function ErrorNotice({ error, what, onRetry }: ErrorNoticeProps): ReactNode {
  const advice = adviseOn(error);
  const problems = error instanceof ApiError ? (error.problem?.problems ?? []) : [];
  return (
    <div className="flex gap-3 rounded-lg border border-denied/40 bg-denied-soft px-4 py-3 text-sm" role="alert">
      <span className="mt-0.5 text-denied">
        <Icon name="warning" size={18} />
      </span>
      <div className="min-w-0 flex-1">
        <p className="font-semibold text-ink">{what}</p>
        <p className="break-words text-ink-soft">{errorMessage(error)}</p>
        {problems.length > 0 && (
          <ul className="mt-1 list-disc pl-5 text-ink-soft">
            {problems.map(({ field, message, line }) => (
              <li key={`${field} ${message}`}>
                {line !== undefined && `Line ${line}: `}
                <code className="font-mono text-xs">{field}</code> {message}
              </li>
            ))}
          </ul>
        )}
        {advice !== undefined && <p className="mt-1 text-ink-soft">{advice}</p>}
        <p className="mt-1 font-mono text-xs text-ink-faint">{errorCode(error)}</p>
      </div>
      {onRetry !== undefined && isTemporary(error) && (
        <Button icon="refresh" onClick={onRetry} small>
          Try again
        </Button>
      )}
    </div>
  );
}
