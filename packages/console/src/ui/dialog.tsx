import { Dialog as BaseDialog } from "@base-ui/react/dialog";
import type { ReactNode } from "react";
import { IconButton } from "./button.tsx";
import { classNames } from "./class-names.ts";

interface DialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly about?: ReactNode;
  readonly children: ReactNode;
  /** Buttons, the most important last. */
  readonly actions?: ReactNode;
  readonly wide?: boolean;
}

export const floatingClass = "rounded-lg border border-line bg-raised shadow-floating outline-none animate-appear";

export function Dialog({ open, onClose, title, about, children, actions, wide = false }: DialogProps): ReactNode {
  return (
    <BaseDialog.Root onOpenChange={(isOpen) => !isOpen && onClose()} open={open}>
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className="fixed inset-0 z-40 bg-[rgb(8_14_20/50%)]" />
        <BaseDialog.Popup
          className={classNames(
            floatingClass,
            "fixed top-[12vh] left-1/2 z-50 flex max-h-[76vh] -translate-x-1/2 flex-col",
            wide ? "w-[min(64rem,calc(100vw-2rem))]" : "w-[min(32rem,calc(100vw-2rem))]",
          )}
        >
          <div className="px-5 pt-4 pr-14 pb-2">
            <BaseDialog.Title className="text-lg font-semibold">{title}</BaseDialog.Title>
            {about !== undefined && (
              <BaseDialog.Description className="mt-1 text-sm text-ink-faint" render={<div />}>
                {about}
              </BaseDialog.Description>
            )}
          </div>
          <div className="min-h-0 flex-1 overflow-y-auto px-5 py-2">{children}</div>
          {actions !== undefined && (
            <div className="flex flex-wrap justify-end gap-2 border-t border-line px-5 py-3">{actions}</div>
          )}
          {/* Last, so that the first field has the focus when it opens. */}
          <BaseDialog.Close render={<IconButton className="absolute top-3 right-3" icon="close" label="Close" />} />
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  );
}
