export interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
}

export function hasPackages(
  wanted: Readonly<Record<string, LockedPackage>>,
  installed: Readonly<Record<string, LockedPackage>>,
  system: { readonly platform: string; readonly arch: string },
): boolean;
