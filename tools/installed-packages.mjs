// Whether the packages that npm has installed are those of the lock file.

/**
 * Compares the `packages` of package-lock.json with those of node_modules/.package-lock.json, which npm writes after an installation. Optional packages must be
 * there if they are for this system, except those for one C library only.
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
