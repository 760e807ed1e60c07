// `npm run build`: builds everything, even if nothing has changed. Installs the locked packages first if they are missing.
import { prepare } from "./prepare.mjs";

prepare({ rebuilds: true });
