import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import type { Logger } from "../logger.ts";
import type { SystemClock } from "./clock.ts";

/** Wait between two probes, in milliseconds. A probe opens and closes one file, which takes some 20 µs. */
const probeEveryMs = 1_000;
/** How long health still mentions a shortage that is over, in milliseconds: nobody could connect while it lasted. */
const rememberedMs = 60_000;
/** Codes of the system: this process, or the whole system, has no descriptor left. */
const shortageCodes: ReadonlySet<string> = new Set(["EMFILE", "ENFILE"]);
const remedy =
  "raise the limit (`ulimit -n`, LimitNOFILE of systemd, --ulimit nofile of Docker), or find who holds so many connections";

/** What health says: why the node is not ready, or what its operator should know. */
interface Trouble {
  readonly reason: string | undefined;
  readonly warning: string | undefined;
}

export interface DescriptorWatchOptions {
  readonly clock: Pick<SystemClock, "monotonic" | "after">;
  readonly logger: Logger;
  /** Opens a file and closes it. @throws the system's error. */
  readonly probe?: () => void;
}

/** Watches whether the process still gets file descriptors: without them, the broker accepts no connection and makes no callback. */
export class DescriptorWatch {
  readonly #clock: DescriptorWatchOptions["clock"];
  readonly #logger: Logger;
  readonly #probe: () => void;
  #cancel: (() => void) | undefined;
  #isShort = false;
  #shortAt: number | undefined;

  constructor({ clock, logger, probe = openAndClose }: DescriptorWatchOptions) {
    this.#clock = clock;
    this.#logger = logger;
    this.#probe = probe;
  }

  /** Probes until {@link stop}. */
  start(): void {
    this.#look();
    this.#cancel = this.#clock.after(probeEveryMs, () => this.start());
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  get trouble(): Trouble {
    if (this.#isShort) return { reason: `the process has no file descriptor left: ${remedy}`, warning: undefined };
    const agoMs = this.#shortAt === undefined ? rememberedMs : this.#clock.monotonic() - this.#shortAt;
    if (agoMs >= rememberedMs) return { reason: undefined, warning: undefined };
    const warning = `the process had no file descriptor left ${Math.ceil(agoMs / 1_000)} s ago: ${remedy}`;
    return { reason: undefined, warning };
  }

  #look(): void {
    const wasShort = this.#isShort;
    this.#isShort = isShortage(this.#probe);
    if (this.#isShort) this.#shortAt = this.#clock.monotonic();
    if (this.#isShort && !wasShort) this.#logger.error("no file descriptor left: connections are refused", { remedy });
    if (!this.#isShort && wasShort) this.#logger.info("file descriptors available again");
  }
}

function openAndClose(): void {
  closeSync(openSync(devNull, "r"));
}

/** Whether the probe fails because no descriptor is left. Any other error is no shortage. */
function isShortage(probe: () => void): boolean {
  try {
    probe();
    return false;
  } catch (error) {
    return error instanceof Error && "code" in error && shortageCodes.has(String(error.code));
  }
}
