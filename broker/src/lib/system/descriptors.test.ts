import { expect, it } from "vitest";
import { findDescriptorProblem } from "./descriptors.ts";

const limitsOf = (hard: string): string => `Limit                     Soft Limit           Hard Limit           Units
Max core file size        0                    unlimited            bytes
Max open files            ${hard}                  ${hard}                  files
Max locked memory         8388608              8388608              bytes
`;

it.each(["511", "64", "0"])("reports a limit of %s open files, and the limit that is needed", (hard) => {
  expect(findDescriptorProblem(limitsOf(hard))).toMatch(
    new RegExp(`may open ${hard} files at once\\. .* at least 512`),
  );
});

it.each([limitsOf("512"), limitsOf("1048576"), limitsOf("unlimited"), ""])(
  "accepts a limit of 512 and more, and an unknown limit",
  (limits) => {
    expect(findDescriptorProblem(limits)).toBeUndefined();
  },
);
