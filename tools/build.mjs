// `npm run build`: builds everything, also where nothing seems to have changed. It installs the locked packages first if they are not there.
import { prepare } from "./prepare.mjs";

prepare({ rebuilds: true });
