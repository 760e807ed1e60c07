/** Stands in the built files for the address of the site. The broker puts its own there, which it knows only when it starts. */
export const basePlace = "/stele-docs-base/";
