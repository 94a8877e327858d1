// JSON texts of peers. All other files import the scanner from here, so that the work meter counts its work.
import { countScansWith } from '@mcp-gangway/json-scan';
import { noteWalk, roomForWalks, spend } from '../util/timing/work-meter.ts';

countScansWith({ noteWalk, roomForWalks, spend });

export * from '@mcp-gangway/json-scan';
