import { chmodSync, chownSync, linkSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { describeFileError, describeOwner, giveToFolderOwner } from "./file-owner.ts";

const others = 65_534;
const failed = (code: string) => Object.assign(new Error(code), { code });

describe.skipIf(process.platform === "win32")("a message about a file that cannot be used", () => {
  let folder: string;
  let file: string;
  let owner: number;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "stele-owner-"));
    file = join(folder, "file");
    writeFileSync(file, "");
    chmodSync(file, 0o400);
    owner = statSync(file).uid;
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("names the owner of another user's file, and how to get access", () => {
    expect(describeOwner(file, others)).toBe(
      `; ${file} belongs to user ${owner} (mode 0400), and this process runs as user ${others}: ` +
        `run the broker as user ${owner}, or give it the file: chown ${others} ${file}`,
    );
  });

  it("names the command that gives the owner the missing rights", () => {
    expect(describeOwner(file, owner)).toMatch(new RegExp(`: chmod u\\+rw ${file}$`));
    expect(describeOwner(folder, owner)).toMatch(new RegExp(`: chmod u\\+rwx ${folder}$`));
  });

  it("names the owner only if rights are missing, and says so if the file is a folder", () => {
    expect(describeFileError(file, failed("EACCES"))).toMatch(/^EACCES; .*\/file belongs to user/);
    expect(describeFileError(folder, failed("EISDIR"))).toMatch(/^EISDIR; \S+ is a folder: name a file/);
    expect(describeFileError(join(folder, "none", "file"), failed("ENOENT"))).toBe("ENOENT");
  });

  it("names the nearest existing folder above a path that it cannot read", () => {
    expect(describeOwner(join(folder, "none", "file"), others)).toContain(`; ${folder} belongs to user`);
  });

  it("does not suggest to give away the folder above a missing file, which may be one of the system", () => {
    expect(describeOwner(join(folder, "none"), others)).toMatch(
      new RegExp(`, or create ${folder}/none for it, in a folder that it may open: chown ${others} ${folder}/none$`),
    );
  });
});

describe.runIf(process.getuid?.() === 0)("root, in a folder of another user,", () => {
  let folder: string;
  let target: string;
  beforeEach(() => {
    [folder, target] = [mkdtempSync(join(tmpdir(), "stele-owner-")), mkdtempSync(join(tmpdir(), "stele-target-"))];
    chownSync(folder, others, others);
    writeFileSync(join(target, "file"), "");
  });
  afterEach(() => {
    for (const made of [folder, target]) rmSync(made, { recursive: true });
  });

  it("gives its own file to that user", () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    giveToFolderOwner(file);
    expect(statSync(file).uid).toBe(others);
  });

  it.each([
    ["symbolic", symlinkSync],
    ["hard", linkSync],
  ])("gives away no file to which that user made a %s link", (_, makeLink) => {
    const file = join(folder, "file");
    makeLink(join(target, "file"), file);
    try {
      giveToFolderOwner(file);
    } catch (error) {
      expect(error).toMatchObject({ code: "ELOOP" });
    }
    expect(statSync(join(target, "file")).uid).toBe(0);
  });
});
