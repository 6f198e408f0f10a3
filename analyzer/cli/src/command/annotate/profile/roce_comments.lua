-- Fields for captures that `roce-analyze annotate` wrote: the opcode's name with CNPs, and what the comments say, to filter by.
-- Wireshark loads it from its folder of personal Lua plugins; `tshark -X lua_script:roce_comments.lua` for one run.

local roce = Proto("roce", "RoCE analysis")

local fields = {
    opcode = ProtoField.string("roce.opcode", "Opcode"),
    retransmission = ProtoField.bool("roce.retransmission", "Retransmission"),
    original = ProtoField.framenum("roce.retransmission.of", "Retransmission of", base.NONE, frametype.NONE),
    cause = ProtoField.string("roce.retransmission.cause", "Cause"),
    missing = ProtoField.uint32("roce.missing", "PSNs missing before this packet"),
    fate = ProtoField.string("roce.missing.fate", "What became of them"),
    episode = ProtoField.uint32("roce.episode", "Episode"),
    slows = ProtoField.string("roce.cnp.slows", "Flow that the CNP slows"),
    mark = ProtoField.framenum("roce.cnp.mark", "Last mark of that flow", base.NONE, frametype.NONE),
    nak = ProtoField.string("roce.nak", "NAK"),
    credit = ProtoField.uint64("roce.credit", "Credit of NCCL"),
    message = ProtoField.uint64("roce.message", "Message of NCCL"),
}
roce.fields = fields

local comment_field = Field.new("frame.comment")
local opcode_field = Field.new("infiniband.bth.opcode")

-- Operations by the low five bits of the opcode, services by the high three (IBTA 9.2, tables 37 and 38).
local services = { [0] = "RC", [1] = "UC", [2] = "RD", [3] = "UD", [5] = "XRC" }
local operations = {
    [0] = "SEND First", "SEND Middle", "SEND Last", "SEND Last with Immediate", "SEND Only", "SEND Only with Immediate",
    "WRITE First", "WRITE Middle", "WRITE Last", "WRITE Last with Immediate", "WRITE Only", "WRITE Only with Immediate",
    "READ Request", "READ Response First", "READ Response Middle", "READ Response Last", "READ Response Only",
    "Acknowledge", "ATOMIC Acknowledge", "CmpSwap", "FetchAdd", "Resync",
    "SEND Last with Invalidate", "SEND Only with Invalidate", "FLUSH", "ATOMIC WRITE",
}

-- Opcodes of MRC 1.0, which are free for vendors in IBTA's tables.
local multipath = {
    [0xc6] = "WRITE First", [0xc7] = "WRITE Middle", [0xc8] = "WRITE Last", [0xc9] = "WRITE Last with Immediate", [0xca] = "WRITE Only",
    [0xcb] = "WRITE Only with Immediate", [0xd1] = "Acknowledge", [0xd8] = "Endpoint Request", [0xd9] = "Endpoint Response",
    [0xdc] = "SACK", [0xdd] = "NACK", [0xde] = "Probe",
}

local function opcode_name(opcode)
    if multipath[opcode] then return "MRC " .. multipath[opcode] end
    if opcode == 0x81 then return "CNP" end
    if opcode == 0x80 then return "CNP (InfiniBand)" end
    local service = services[math.floor(opcode / 32)]
    local operation = operations[opcode % 32]
    if service and operation then return service .. " " .. operation end
    return nil
end

-- Adds the fields that one sentence of a comment has.
local function add(tree, text)
    local original = text:match("retransmission of frame (%d+)")
    if text:find("retransmission of", 1, true) then
        tree:add(fields.retransmission, true)
        if original then tree:add(fields.original, tonumber(original)) end
        local cause = text:match("retransmission of frame %d+, (.*)") or text:match("no earlier frame, (.*)")
        if cause then tree:add(fields.cause, cause) end
    end
    local missing = text:match("missing before this packet: (%d+) PSNs")
    if not missing and text:find("missing before this packet: PSN", 1, true) then missing = "1" end
    if missing then
        tree:add(fields.missing, tonumber(missing))
        local fate = text:match("missing before this packet: [^:]*: (.*)")
        if fate then tree:add(fields.fate, fate) end
    end
    local episode = text:match("of episode (%d+)")
    if episode then tree:add(fields.episode, tonumber(episode)) end
    local slows = text:match("CNP: slows (.*)")
    if slows then tree:add(fields.slows, slows) end
    if text:find("after its last mark", 1, true) then
        local mark = text:match("%(frame (%d+)%)")
        if mark then tree:add(fields.mark, tonumber(mark)) end
    end
    local credit = text:match("^credit (%d+)")
    if credit then tree:add(fields.credit, UInt64.new(tonumber(credit))) end
    local message = text:match("^message (%d+)") or text:match("^acknowledges message (%d+)")
    if message then tree:add(fields.message, UInt64.new(tonumber(message))) end
    if text:find("NAK", 1, true) == 1 or text:find("RNR NAK", 1, true) == 1 then tree:add(fields.nak, text) end
end

function roce.dissector(buffer, pinfo, tree)
    local opcode = opcode_field()
    local comments = { comment_field() }
    if not opcode and #comments == 0 then return end
    local subtree = tree:add(roce, "RoCE analysis")
    if opcode then
        local name = opcode_name(opcode.value)
        if name then subtree:add(fields.opcode, name) end
        if name and (opcode.value == 0x81 or opcode.value == 0x80 or multipath[opcode.value]) then pinfo.cols.info:set(name) end
    end
    for _, comment in ipairs(comments) do
        for sentence in (tostring(comment.value) .. "; "):gmatch("(.-); ") do
            add(subtree, sentence)
        end
    end
end

register_postdissector(roce)

-- MRC has a port of its own besides that of RoCEv2, whose dissector knows the header.
local ports = DissectorTable.get("udp.port")
local rocev2 = ports:get_dissector(4791)
if rocev2 then ports:add(4971, rocev2) end
