// Whether the packages that npm has installed are those of the lock file.

/**
 * Compares the `packages` of package-lock.json with those of node_modules/.package-lock.json, which npm writes when it has installed.
 * Optional ones must be there when they are for this system; those for one C library alone are not looked for.
 */
export function hasPackages(wanted, installed, { platform, arch }) {
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === "") return true; // The project itself.
    const found = installed[path];
    if (found !== undefined) return found.version === entry.version && found.integrity === entry.integrity;
    return entry.optional === true && !isFor(entry, { platform, arch });
  });
}

function isFor({ os, cpu, libc }, { platform, arch }) {
  return libc === undefined && os?.includes(platform) === true && cpu?.includes(arch) === true;
}
