export interface MemoryFolderOptions {
  /** A folder in memory. */
  readonly memory?: string;
  /** Its `TMPDIR` is where this process and its children create temporary files. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Free bytes that the folder must have. */
  readonly bytesMin?: number;
}

/**
 * Keeps temporary files in memory until this process ends, and returns their folder: brokers sync each block, and some tests wait for the disk most of
 * their time. Returns undefined and changes nothing if `TMPDIR` names another folder, or if there is too little room, no folder can be created or
 * no program may run. Also removes the folders that killed processes of this user left behind.
 */
export function useMemoryFolder(options?: MemoryFolderOptions): string | undefined;

/** Whether programs in a folder may be run. */
export function runsPrograms(folder: string): boolean;
