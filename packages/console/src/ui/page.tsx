import { type ReactNode, useEffect } from "react";

interface PageProps {
  /** The heading, and the title of the window. */
  readonly title: string;
  /** Replaces the title as it is shown. */
  readonly heading?: ReactNode;
  /** A sentence beneath it. */
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** What every view is: one heading, its actions, and the rest. */
export function Page({ title, heading, about, actions, children }: PageProps): ReactNode {
  useEffect(() => {
    document.title = `${title} · Sluice`;
  }, [title]);
  return (
    <div className="mx-auto flex w-full max-w-[96rem] flex-col gap-4 px-6 py-5">
      <header className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0">
          <h1 className="flex flex-wrap items-center gap-x-3 gap-y-1 text-xl font-semibold tracking-tight break-words">
            {heading ?? title}
          </h1>
          {about !== undefined && <div className="mt-1 max-w-[75ch] text-sm text-pretty text-ink-faint">{about}</div>}
        </div>
        {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
