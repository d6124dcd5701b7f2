import type { ReactNode } from "react";
import { Icon, type IconName } from "./icon.tsx";

interface EmptyStateProps {
  readonly icon?: IconName;
  /** What is not there: "No policy matches “orders”". */
  readonly title: string;
  /** Why, and what to do next. */
  readonly children: ReactNode;
  readonly actions?: ReactNode;
}

export function EmptyState({ icon = "info", title, children, actions }: EmptyStateProps): ReactNode {
  return (
    <div className="mx-auto flex max-w-[60ch] flex-col items-center gap-2 px-6 py-10 text-center">
      <span className="flex size-10 items-center justify-center rounded-full bg-sunken text-ink-faint">
        <Icon name={icon} size={20} />
      </span>
      <p className="font-semibold">{title}</p>
      <div className="text-sm text-ink-faint">{children}</div>
      {actions !== undefined && <div className="mt-2 flex flex-wrap justify-center gap-2">{actions}</div>}
    </div>
  );
}
