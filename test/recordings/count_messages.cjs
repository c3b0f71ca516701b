// Reads MCAP files with @mcap/core alone, through their index and as a stream, and prints as JSON what is in them.
//
//   node count_messages.cjs FOLDER_WITH_NODE_MODULES FILE.mcap…
//
// For each file: {"indexed": {topic: messages}, "streamed": {topic: messages}, "first", "last": log times [ns]}.
"use strict";

const { createRequire } = require("node:module");
const fs = require("node:fs");
const path = require("node:path");

const [folder, ...files] = process.argv.slice(2);
const { McapIndexedReader, McapStreamReader } = createRequire(path.resolve(folder, "package.json"))("@mcap/core");

async function indexed(content, found) {
  const readable = {
    size: async () => BigInt(content.length),
    read: async (offset, length) => new Uint8Array(content.subarray(Number(offset), Number(offset + length))),
  };
  const reader = await McapIndexedReader.Initialize({ readable });
  if (reader.header.profile !== "ros2") {
    throw new Error(`profile ${reader.header.profile}`);
  }
  const times = [];
  for await (const message of reader.readMessages({ validateCrcs: true })) {
    const { topic } = reader.channelsById.get(message.channelId);
    found.indexed[topic] = (found.indexed[topic] ?? 0) + 1;
    times.push(message.logTime);
  }
  found.first = String(times[0]);
  found.last = String(times[times.length - 1]);
}

function streamed(content, found) {
  const reader = new McapStreamReader({ validateCrcs: true });
  reader.append(content);
  const topics = new Map();
  for (let record = reader.nextRecord(); record; record = reader.nextRecord()) {
    if (record.type === "Channel") {
      topics.set(record.id, record.topic);
    } else if (record.type === "Message") {
      const topic = topics.get(record.channelId);
      found.streamed[topic] = (found.streamed[topic] ?? 0) + 1;
    }
  }
  if (!reader.done()) {
    throw new Error("the file does not end as it should");
  }
}

async function main() {
  const all = [];
  for (const file of files) {
    const content = fs.readFileSync(file);
    const found = { indexed: {}, streamed: {} };
    await indexed(content, found);
    streamed(content, found);
    all.push(found);
  }
  console.log(JSON.stringify(all));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
