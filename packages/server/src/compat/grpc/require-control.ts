import { SluiceError } from "sluice";
import type { ControlPlane } from "../../control-plane/control-plane.ts";

/** The control plane. Throws `not_found`, which is UNIMPLEMENTED, on a server without a policy store. */
export function requireControl(control: ControlPlane | undefined): ControlPlane {
  if (control !== undefined) return control;
  throw new SluiceError("not_found", "this server has no policy store; start it with --store, or ask one that has");
}
