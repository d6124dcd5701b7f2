import type { PolicyValidationBody } from "@sluice/protocol/admin";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { admin } from "../../api/admin.ts";
import type { LineProblem } from "../../ui/code-editor.tsx";

/** A moment after the last key. */
const settledMs = 350;

export interface Validation {
  readonly answer: PolicyValidationBody | undefined;
  readonly error: Error | null;
  /** The answer is about an earlier text. */
  readonly pending: boolean;
  readonly lines: readonly LineProblem[];
}

/** What the server says about the text, next to the policies in the store. */
export function useValidation(text: string): Validation {
  const settled = useSettled(text);
  const { data, error, isPlaceholderData } = useQuery({
    queryKey: ["validation", settled],
    queryFn: ({ signal }) => admin.validatePolicy(settled, signal),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    gcTime: 60_000,
    retry: false,
  });
  const lines = useMemo(
    (): readonly LineProblem[] => [
      ...(data?.problems ?? []).map(({ line = 1, field, message }) => ({
        line,
        message: `${field} ${message}`,
        kind: "problem" as const,
      })),
      ...(data?.warnings ?? []).map(({ line = 1, field, message }) => ({
        line,
        message: `${field} ${message}`,
        kind: "warning" as const,
      })),
    ],
    [data],
  );
  return { answer: data, error, pending: settled !== text || isPlaceholderData, lines };
}

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), settledMs);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
