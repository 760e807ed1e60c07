// Checks whether npm has installed the packages of the lock file.

/**
 * Compares the `packages` of package-lock.json with those of node_modules/.package-lock.json, which npm writes after an installation. Optional packages for
 * this system must be there too, except those for only one C library.
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
