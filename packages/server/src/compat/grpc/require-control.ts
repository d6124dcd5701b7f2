import { SluiceError } from "sluice";
import type { ControlPlane } from "../../control-plane/control-plane.ts";

/** The control plane. Throws `not_found`, which is UNIMPLEMENTED, on a server without a policy store or admin port. */
export function requireControl(control: ControlPlane | undefined): ControlPlane {
  if (control !== undefined) return control;
  throw new SluiceError(
    "not_found",
    "this server has no policy store, or its admin port is off; start it with --store and --admin-port, or ask another",
  );
}
