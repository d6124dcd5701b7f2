import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { admin } from "../../api/admin.ts";
import { renderPolicyYaml } from "../../policy/policy-form.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { DiffView } from "../../ui/diff-view.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";

interface ConflictNoticeProps {
  readonly id: string;
  /** What is in the store now. 0: the policy was deleted. */
  readonly version: number;
  readonly text: string;
  /** Publishes this text over that version. */
  readonly onKeepMine: () => void;
  /** Goes on from that version, without this edit. */
  readonly onTakeTheirs: (text: string) => void;
}

/** Another writer was quicker: both texts, and what to do. */
export function ConflictNotice({ id, version, text, onKeepMine, onTakeTheirs }: ConflictNoticeProps): ReactNode {
  const { data, error } = useQuery({
    queryKey: ["policy", id, "version", version],
    queryFn: ({ signal }) => admin.policy(id, signal),
  });
  if (error !== null) return <ErrorNotice error={error} what="The other version cannot be shown" />;
  if (data === undefined) return <SkeletonRows rows={3} />;
  const theirs = renderPolicyYaml(data.document);
  return (
    <Card
      aside={
        <>
          <Button onClick={() => onTakeTheirs(theirs)} small>
            Discard mine
          </Button>
          <Button kind="primary" onClick={onKeepMine} small>
            Keep mine, as version {data.version + 1}
          </Button>
        </>
      }
      className="border-warning"
      title="Another version was published while you edited"
    >
      <p className="pb-2 text-sm text-ink-soft" role="alert">
        {data.author} published version {data.version}
        {data.why !== "" && ` (“${data.why}”)`}. Nothing of yours was published. Bring into your text what you want to
        keep of theirs.
      </p>
      <DiffView
        after={text}
        afterLabel="Yours"
        before={theirs}
        beforeLabel={`Version ${data.version}`}
        label="Their version and yours"
      />
    </Card>
  );
}
