import { expect, it } from "vitest";
import { copyOf } from "./copy-of.ts";

it.each(["", "topic/+/#", "ÿ€😀", "\ud800 lone"])("copies %j", (text) => expect(copyOf(text)).toBe(text));
