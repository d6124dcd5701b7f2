import { Toast } from "@base-ui/react/toast";
import type { ReactNode } from "react";
import { errorMessage } from "../api/advise.ts";
import { Button, IconButton } from "./button.tsx";
import { floatingClass } from "./dialog.tsx";
import { Icon } from "./icon.tsx";

const toasts = Toast.createToastManager();

interface ToastOptions {
  readonly about?: string;
  /** Offers to undo what was done. */
  readonly onUndo?: () => Promise<unknown>;
}

/** Says that something was done. With `onUndo` it stays long enough to think twice. */
export function showDone(title: string, { about, onUndo }: ToastOptions = {}): void {
  const id = toasts.add({
    title,
    ...(about !== undefined && { description: about }),
    type: "done",
    timeout: onUndo === undefined ? 5_000 : 30_000,
    ...(onUndo !== undefined && {
      actionProps: {
        children: "Undo",
        onClick: () => {
          toasts.close(id);
          onUndo().then(
            () => showDone("Undone"),
            (error: unknown) => showFailed("Undoing failed", error),
          );
        },
      },
    }),
  });
}

export function showFailed(title: string, error: unknown): void {
  toasts.add({ title, description: errorMessage(error), type: "failed", timeout: 12_000, priority: "high" });
}

/** Where notices appear. Once per page. */
export function ToastRegion(): ReactNode {
  return (
    <Toast.Provider limit={4} toastManager={toasts}>
      <Toast.Portal>
        <Toast.Viewport className="fixed right-5 bottom-5 z-60 flex w-[min(24rem,calc(100vw-2.5rem))] flex-col gap-2 outline-none">
          <ToastList />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function ToastList(): ReactNode {
  const { toasts: shown } = Toast.useToastManager();
  return shown.map((toast) => (
    <Toast.Root className={`${floatingClass} flex items-start gap-3 px-4 py-3 text-sm`} key={toast.id} toast={toast}>
      <span className={toast.type === "failed" ? "text-denied" : "text-good"}>
        <Icon name={toast.type === "failed" ? "warning" : "check"} size={18} />
      </span>
      <div className="min-w-0 flex-1" role="status">
        <Toast.Title className="font-semibold" render={<p />} />
        <Toast.Description className="break-words text-ink-faint" />
      </div>
      {toast.actionProps !== undefined && <Toast.Action render={<Button icon="undo" small />} />}
      <Toast.Close render={<IconButton icon="close" label="Dismiss" />} />
    </Toast.Root>
  ));
}
